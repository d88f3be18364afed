"""The committed zoo and card table are whole and consistent. Needs nothing but Python."""

import json
import pathlib
import unittest

MODELS = pathlib.Path(__file__).resolve().parents[2] / "models"


class ZooTest(unittest.TestCase):
    def setUp(self):
        self.models = json.loads((MODELS / "zoo" / "zoo.json").read_text())["models"]

    def test_register_and_files_agree(self):
        listed = [model["file"] for model in self.models]
        self.assertEqual(sorted(listed), sorted(path.name for path in (MODELS / "zoo").glob("*.onnx")))

    def test_sources_exist(self):
        for model in self.models:
            module, function = model["source"].split(":")
            self.assertIn(f"def {function}(", (MODELS / "zoo" / f"{module}.py").read_text())

    def test_enough_families_and_small_files(self):
        self.assertGreaterEqual(len({model["family"] for model in self.models}), 14)
        for model in self.models:
            self.assertLess((MODELS / "zoo" / model["file"]).stat().st_size, 2_000_000, model["file"])


class CardsTest(unittest.TestCase):
    def setUp(self):
        self.cards = json.loads((MODELS / "gpus.json").read_text())["cards"]

    def test_names_and_aliases_are_unique(self):
        names = [name.lower() for card in self.cards for name in [card["name"], *card["aliases"]]]
        self.assertEqual(len(names), len(set(names)))

    def test_figures_are_plausible(self):
        self.assertGreaterEqual(len(self.cards), 60)
        for card in self.cards:
            with self.subTest(card["name"]):
                self.assertTrue(card["source"])
                self.assertEqual(card["estimated"], "estimated from" in card["source"])
                self.assertGreater(card["total_bytes"], 4 << 30)
                self.assertLess(card["total_bytes"], 300 << 30)
                self.assertRegex(card["compute_capability"], r"^\d+\.\d$")
                self.assertIn(card["sm_count"], range(8, 200))
                for offer in card["cloud"]:
                    self.assertEqual(set(offer), {"provider", "instance", "gpus"})

    def test_a_generation_has_one_range_of_capabilities(self):
        capabilities = {
            "pascal": {"6.0", "6.1"},
            "volta": {"7.0"},
            "turing": {"7.5"},
            "ampere": {"8.0", "8.6"},
            "ada": {"8.9"},
            "hopper": {"9.0"},
            "blackwell": {"10.0", "10.3", "12.0"},
        }
        for card in self.cards:
            self.assertIn(card["compute_capability"], capabilities[card["generation"]], card["name"])


if __name__ == "__main__":
    unittest.main()
