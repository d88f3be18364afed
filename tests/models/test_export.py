"""models/export.py by its command line, on modules small enough to take seconds. Needs scripts/setup --models."""

import contextlib
import io
import os
import pathlib
import sys
import tempfile
import unittest
from unittest import mock

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "models"))
import export

MODULES = """
import torch
from torch import nn

class Conv(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8)
        self.twin, self.dropout, self.head = nn.BatchNorm2d(8), nn.Dropout(0.1), nn.Linear(8, 10)

    def forward(self, x):
        return self.head(self.dropout(self.twin(self.norm(self.conv(x))).mean((2, 3))))

class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(1000, 64), nn.Linear(64, 1000, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, input_ids):
        return self.head(self.embedding(input_ids))

class Fixed(nn.Module):
    def forward(self, x):
        return x + torch.ones(4, 6)

def conv():
    return Conv(), (torch.randn(2, 3, 16, 16),)

def bare():
    return Conv()

def tied():
    return Tied(), {"input_ids": torch.zeros(2, 16, dtype=torch.int64)}

def tied_on_meta():
    with torch.device("meta"):
        model = Tied()
    return model, {"input_ids": torch.zeros(2, 16, dtype=torch.int64)}

def one_row():
    return Conv(), (torch.randn(1, 3, 16, 16),)

def fixed():
    return Fixed(), (torch.randn(4, 6),), {"x": {0: "batch"}}

class Kept(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(1000, 64), nn.Linear(64, 1000)

    def forward(self, input_ids, mask=None, keep=0):
        return self.head(self.embedding(input_ids)[:, -keep:])

def kept():
    return Kept(), {"input_ids": torch.zeros(2, 16, dtype=torch.int64)}

def no_model():
    return 3
"""


class ExportTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = pathlib.Path(cls.folder.name)
        (cls.path / "modules.py").write_text(MODULES)
        cls.home = os.getcwd()
        os.chdir(cls.path)

    @classmethod
    def tearDownClass(cls):
        os.chdir(cls.home)
        cls.folder.cleanup()

    def run_export(self, *arguments):
        """Exit status and what was written to standard error; one process, since importing PyTorch takes seconds."""
        errors, code = io.StringIO(), 0
        with mock.patch.object(sys, "argv", ["export.py", *arguments]):
            with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
                try:
                    export.main()
                except SystemExit as stopped:
                    code = stopped.code
        return code, errors.getvalue()

    def export(self, function, *options):
        import onnx

        code, errors = self.run_export(f"modules.py:{function}", "-o", "model.onnx", *options)
        self.assertEqual((code, errors), (0, ""))
        return onnx.load(self.path / "model.onnx", load_external_data=False)

    def dims(self, model, name):
        value = next(value for value in model.graph.input if value.name == name)
        return [dim.dim_param or dim.dim_value for dim in value.type.tensor_type.shape.dim]

    def test_training_mode_keeps_batch_norm_and_dropout_from_both_exporters(self):
        for exporter in ("dynamo", "ts"):
            with self.subTest(exporter):
                model = self.export("conv", "--exporter", exporter)
                operators = [node.op_type for node in model.graph.node]
                self.assertEqual(operators.count("BatchNormalization"), 2)
                self.assertIn("Dropout", operators)
                self.assertEqual(self.dims(model, "x"), ["batch", 3, 16, 16])

    def test_equal_initial_values_are_not_merged_and_large_weights_left_out(self):
        for options in ([], ["--exporter", "ts", "--mode", "eval"]):
            with self.subTest(options):
                model = self.export("tied", *options)
                (weight,) = [tensor for tensor in model.graph.initializer if list(tensor.dims) == [1000, 64]]
                self.assertEqual(weight.data_location, weight.EXTERNAL)
                self.assertFalse(weight.HasField("raw_data"))
                self.assertFalse((self.path / "weights-left-out.data").exists())
        model = self.export("conv")
        self.assertEqual(len([t for t in model.graph.initializer if t.name.startswith(("norm.", "twin."))]), 8)

    def test_defaults_that_are_numbers_are_no_inputs(self):
        for exporter in ("dynamo", "ts"):
            with self.subTest(exporter):
                model = self.export("kept", "--exporter", exporter)
                self.assertEqual([value.name for value in model.graph.input], ["input_ids"])

    def test_edges_tell_a_tied_weight_that_the_exporter_transposed(self):
        import numpy

        model = self.export("tied", "--exporter", "ts", "--mode", "eval", "--optimize", "--weights", "edges")
        self.assertEqual(len(model.graph.initializer), 2)
        data = (self.path / "model.onnx.data").read_bytes()
        values = {}
        for tensor in model.graph.initializer:
            place = {entry.key: entry.value for entry in tensor.external_data}
            raw = data[int(place["offset"]) :][: int(place["length"])]
            values[tuple(tensor.dims)] = numpy.frombuffer(raw, "float32").reshape(tensor.dims)
        numpy.testing.assert_array_equal(values[1000, 64][0], values[64, 1000][:, 0])
        numpy.testing.assert_array_equal(values[1000, 64][500], values[64, 1000][:, 500])
        self.assertTrue(values[1000, 64][0].any())

    def test_all_weights(self):
        import onnx

        self.export("conv", "--weights", "all")
        onnx.checker.check_model(str(self.path / "model.onnx"))
        model = onnx.load(self.path / "model.onnx")
        self.assertGreater(sum(len(tensor.raw_data) for tensor in model.graph.initializer), 4 * (8 * 27 + 80))

    def test_a_model_on_the_meta_device_needs_no_memory(self):
        self.assertEqual(self.dims(self.export("tied_on_meta"), "input_ids"), ["batch", "sequence"])

    def test_slim_files_keep_what_names_the_program(self):
        model = self.export("conv", "--slim")
        (conv,) = [node for node in model.graph.node if node.op_type == "Conv"]
        metadata = {entry.key: entry.value for entry in conv.metadata_props}
        self.assertIn("aten.conv2d.default", metadata["pkg.torch.onnx.fx_node"])
        self.assertIn('File "modules.py"', metadata["pkg.torch.onnx.stack_trace"])
        self.assertNotIn(str(self.path), model.SerializeToString().decode("latin-1"))

    def test_axes_and_inputs_from_the_command_line(self):
        model = self.export("bare", "--input", "x=2x3x32x48", "--axes", "x=batch,-,height,width")
        self.assertEqual(self.dims(model, "x"), ["batch", 3, "height", "width"])

    def test_errors_say_what_and_what_to_do(self):
        for arguments, code, text in (
            (["modules.py:nothing"], 3, "it has: "),
            (["modules.py"], 2, "MODULE:FUNCTION"),
            (["missing.py:conv"], 3, "no such file"),
            (["not_there:conv"], 3, "cannot import"),
            (["modules.py:no_model"], 3, "not a torch.nn.Module"),
            (["modules.py:bare"], 3, "--input"),
            (["modules.py:bare", "--input", "y=2x3x16x16"], 3, "forward"),
            (["modules.py:bare", "--input", "x=2x?"], 2, "NAME="),
            (["modules.py:conv", "--axes", "y=batch"], 2, "no input 'y'"),
            (["modules.py:one_row"], 3, "at least 2"),
            (["modules.py:fixed"], 3, "--axes"),
            (["modules.py:conv", "-o", "missing/model.onnx"], 2, "does not exist"),
        ):
            with self.subTest(arguments):
                self.assertEqual(self.run_export(*arguments), (code, mock.ANY))
                self.assertIn(text, self.run_export(*arguments)[1])


if __name__ == "__main__":
    unittest.main()
