#!/usr/bin/env python3
"""The generator of the GPU tables refuses rows that are wrong, and says which and why."""

import os
import shutil
import sys
import tempfile
import unittest

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True

import generate  # noqa: E402


class Refusals(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.dir)
        for name in os.listdir(HERE):
            if name.endswith(".yaml"):
                shutil.copy(os.path.join(HERE, name), self.dir)

    def spoil(self, name, change):
        path = os.path.join(self.dir, name)
        with open(path, encoding="utf-8") as file:
            rows = yaml.safe_load(file)
        change(rows)
        with open(path, "w", encoding="utf-8") as file:
            yaml.safe_dump(rows, file, sort_keys=False)

    def refused(self, name, change, *words):
        self.spoil(name, change)
        with self.assertRaises(generate.Mistake) as caught:
            generate.generate(self.dir)
        for word in words:
            self.assertIn(word, str(caught.exception))

    def test_good_data_gives_tables(self):
        self.assertIn("kModelTable", generate.generate(self.dir))

    def test_same_data_gives_the_same_text(self):
        self.assertEqual(generate.generate(self.dir), generate.generate(self.dir))

    def test_missing_field(self):
        self.refused("nvidia.yaml", lambda rows: rows["models"][0].pop("memory_mib"), "A30", "missing memory_mib")

    def test_missing_source(self):
        self.refused("servers.yaml", lambda rows: rows["servers"][0].pop("source"), "dgx-1-v100", "missing source")

    def test_unknown_field(self):
        self.refused("amd.yaml", lambda rows: rows["models"][0].update(wheels=4), "MI300X", "unknown field wheels")

    def test_alias_given_twice(self):
        self.refused("nvidia.yaml", lambda rows: rows["models"][1]["aliases"].append("nvidia_a30"),
                     "A100-40", "'a30' already stands for", "A30")

    def test_placement_outside_the_grid(self):
        self.refused("mig.yaml", lambda rows: rows["grids"][0]["profiles"]["3g"]["starts"].append(6),
                     "seven", "3g", "leaves the grid of 8")

    def test_profile_name_that_does_not_fit_its_shape(self):
        self.refused("nvidia.yaml", lambda rows: rows["models"][0]["mig"]["profiles"]["2g"].update(name="1g.12gb"),
                     "A30", "must have 2 compute slices")

    def test_missing_profile(self):
        self.refused("nvidia.yaml", lambda rows: rows["models"][0]["mig"]["profiles"].pop("4g"), "A30", "in this order")

    def test_server_with_another_number_of_gpus(self):
        self.refused("servers.yaml", lambda rows: rows["servers"][1].update(gpus=8), "dgx-2", "gpu_numa")

    def test_one_sided_link(self):
        self.refused("servers.yaml", lambda rows: rows["servers"][0]["links"]["matrix"][0].__setitem__(1, 2),
                     "dgx-1-v100", "do not agree")

    def test_unknown_server(self):
        self.refused("nvidia.yaml", lambda rows: rows["models"][0]["boards"][0].update(server="attic"), "A30", "attic")

    def test_pci_id_that_yaml_read_as_a_number(self):
        self.refused("nvidia.yaml", lambda rows: rows["models"][0]["boards"][0].update(pci=[2330]), "PCI id 2330")


if __name__ == "__main__":
    unittest.main()
