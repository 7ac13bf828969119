#!/usr/bin/env python3
"""Turns the GPU data files into one C++ file of constant tables.

Every row is checked first: missing and unknown fields, names given twice, MIG placements outside their grid, layouts
that do not match the number of GPUs. A mistake ends the build with the file, the row and what is wrong.

Usage: generate.py --data DIR --out FILE
"""

import argparse
import os
import re
import sys

try:
    import yaml
except ImportError:
    sys.exit("generate.py: python3-yaml is missing; install it (apt-get install python3-yaml)")

MODEL_FIELDS = {"name", "aliases", "architecture", "family", "compute_capability", "memory_mib", "reserved_mib", "units",
                "link", "unconfirmed", "source", "boards"}
BOARD_FIELDS = {"name", "labels", "pci", "power", "server", "unconfirmed", "source"}
MIG_FIELDS = {"grid", "unconfirmed", "source", "profiles"}
PROFILE_FIELDS = {"name", "memory_mib", "units", "engines"}
GRID_FIELDS = {"name", "compute", "memory", "source", "profiles"}
SHAPE_FIELDS = {"compute", "memory", "starts", "max", "smi_id", "media"}
SERVER_FIELDS = {"name", "fabric", "gpus", "cpu", "pcie", "gpu_numa", "gpu_switch", "links", "nics", "source"}
PARTITION_FIELDS = {"name", "partitions", "units", "memory_modes", "qualified", "source"}
CPU_FIELDS = {"link_mb_s", "root_permille", "source"}
LINK_FIELDS = {"kind", "generation", "links", "raw_mb_s", "effective_mb_s"}
MEDIA = {"none": "kNone", "part": "kPart", "me": "kExtended", "all": "kAll"}
FABRIC = {"none": "kNone", "bridge": "kBridge", "mesh": "kMesh", "switch": "kSwitch", "rack": "kRack"}
PATH = {"PIX": "kPix", "PXB": "kPxb", "PHB": "kPhb", "NODE": "kNode"}
VENDORS = {"nvidia.yaml": ("kNvidia", "10de"), "amd.yaml": ("kAmd", "1002")}
PROFILE_NAME = re.compile(r"([1-9])g\.(0|[1-9][0-9]*)gb((?:\+[a-z.]+(?:,[a-z.]+)*)|(?:-me))?$")


class Mistake(Exception):
    pass


def need(condition, where, text):
    if not condition:
        raise Mistake(f"{where}: {text}")


def fields(row, required, optional, where):
    need(isinstance(row, dict), where, "must be a mapping")
    missing = sorted(required - row.keys())
    need(not missing, where, f"missing {', '.join(missing)}")
    unknown = sorted(str(key) for key in row.keys() - required - optional)
    need(not unknown, where, f"unknown field {', '.join(unknown)}")
    if "source" in required:
        need(isinstance(row["source"], str) and row["source"].strip(), where, "source is empty")


def number(value, where, low, high):
    need(isinstance(value, int) and not isinstance(value, bool) and low <= value <= high, where,
         f"must be a whole number from {low} to {high}, is {value!r}")
    return value


def known(value, where, low, high):
    """A number, or 0 for null (not known)."""
    return 0 if value is None else number(value, where, low, high)


def unconfirmed(row, allowed, where):
    names = row.get("unconfirmed", [])
    need(isinstance(names, list), where, "unconfirmed must be a list")
    for name in names:
        need(name in allowed, where, f"unconfirmed names {name!r}, which is no field here")
    return names


def text(value):
    return '"' + str(value).replace("\\", "\\\\").replace('"', '\\"') + '"'


def normalise(name):
    """As catalog.cc does to what it looks up."""
    key = name.lower().replace(" ", "-").replace("_", "-")
    if key.endswith("-shared"):
        key = key[:-len("-shared")]
    key = key.split("-mig-")[0]
    while True:
        short = re.sub(r"^(nvidia-|tesla-|amd-|instinct-)", "", key)
        if short == key:
            return key
        key = short


class Writer:
    """Collects the C++ text; arrays are named by counters."""

    def __init__(self):
        self.lines = []
        self.count = 0

    def array(self, kind, items):
        """Declares an array of the items and returns an expression for a span over it."""
        if not items:
            return "{}"
        self.count += 1
        name = f"kArray{self.count}"
        self.lines.append(f"constexpr {kind} {name}[] = {{")
        self.lines += [f"    {item}," for item in items]
        self.lines.append("};")
        return name


def load(data, name):
    path = os.path.join(data, name)
    try:
        with open(path, encoding="utf-8") as file:
            return yaml.safe_load(file)
    except (OSError, yaml.YAMLError) as problem:
        raise Mistake(f"{name}: {problem}") from problem


def check_grids(rows):
    grids = {}
    for row in rows:
        where = f"mig.yaml: grid {row.get('name')}"
        fields(row, GRID_FIELDS, set(), where)
        need(row["name"] not in grids, where, "is there twice")
        number(row["compute"], f"{where}: compute", 1, 8)
        number(row["memory"], f"{where}: memory", 1, 16)
        slots = 0
        for key, shape in row["profiles"].items():
            at = f"{where}: profile {key}"
            fields(shape, SHAPE_FIELDS, {"graphics"}, at)
            number(shape["compute"], f"{at}: compute", 1, row["compute"])
            number(shape["memory"], f"{at}: memory", 1, row["memory"])
            number(shape["max"], f"{at}: max", 1, row["compute"])
            number(shape["smi_id"], f"{at}: smi_id", 0, 255)
            need(shape["media"] in MEDIA, at, f"media must be one of {', '.join(MEDIA)}")
            need(shape["starts"] == sorted(set(shape["starts"])) and shape["starts"], at, "starts must rise")
            for start in shape["starts"]:
                number(start, f"{at}: start", 0, row["memory"])
                need(start + shape["memory"] <= row["memory"], at,
                     f"start {start} with {shape['memory']} slices leaves the grid of {row['memory']}")
            slots += len(shape["starts"])
        need(len(row["profiles"]) <= 16, where, f"has {len(row['profiles'])} profiles; counts are kept for 16")
        need(slots <= 64, where, f"has {slots} placements; a layout is a mask of 64 bits")
        ids = [shape["smi_id"] for shape in row["profiles"].values()]
        need(len(ids) == len(set(ids)), where, "two profiles have one smi_id")
        grids[row["name"]] = row
    return grids


def link_counts(row, where):
    """The N x N table of links between GPUs."""
    gpus, links = row["gpus"], row["links"]
    counts = [[0] * gpus for _ in range(gpus)]
    if "matrix" in links:
        counts = links["matrix"]
        need(len(counts) == gpus and all(len(line) == gpus for line in counts), where, f"links must be {gpus} x {gpus}")
    elif "pairs" in links:
        for a, b in links["pairs"]:
            number(a, f"{where}: links", 0, gpus - 1)
            number(b, f"{where}: links", 0, gpus - 1)
            counts[a][b] = counts[b][a] = links["links"]
    else:
        counts = [[0 if a == b else links["all"] for b in range(gpus)] for a in range(gpus)]
    for a in range(gpus):
        need(counts[a][a] == 0, where, f"links: GPU {a} has a link to itself")
        for b in range(gpus):
            number(counts[a][b], f"{where}: links", 0, 32)
            need(counts[a][b] == counts[b][a], where, f"links: GPUs {a} and {b} do not agree")
    return counts


def write_server(row, cpus, out):
    where = f"servers.yaml: {row.get('name')}"
    fields(row, SERVER_FIELDS, {"domain_gpus", "numa_nodes", "switch_link", "host_link", "unconfirmed"}, where)
    gpus = number(row["gpus"], f"{where}: gpus", 1, 64)
    need(row["fabric"] in FABRIC, where, f"fabric must be one of {', '.join(FABRIC)}")
    need(row["cpu"] in cpus, where, f"no cpu is called {row['cpu']}")
    number(row["pcie"], f"{where}: pcie", 3, 6)
    for field in ("gpu_numa", "gpu_switch"):
        need(len(row[field]) == gpus, where, f"{field} must have {gpus} entries")
    numa_nodes = row.get("numa_nodes", max(row["gpu_numa"]) + 1)
    for node in row["gpu_numa"]:
        number(node, f"{where}: gpu_numa", 0, numa_nodes - 1)
    counts = link_counts(row, where)
    need(row["fabric"] != "none" or not any(map(any, counts)), where, "fabric none has links")
    nics = row["nics"]
    rate = number(nics["gbit"], f"{where}: nics.gbit", 1, 3200)
    places = []
    for switch in nics.get("switch", []):
        need(switch in row["gpu_switch"], where, f"a NIC is on switch {switch}, where no GPU is")
        numa = row["gpu_numa"][row["gpu_switch"].index(switch)]
        places.append(f"{{{numa}, {switch}, {rate}}}")
    for numa in nics.get("numa", []):
        places.append(f"{{{number(numa, f'{where}: nics.numa', -1, numa_nodes - 1)}, -1, {rate}}}")
    cpu = cpus[row["cpu"]]
    pending = ", ".join(unconfirmed(row, row.keys(), where))
    numa_array = out.array("int8_t", row["gpu_numa"])
    switch_array = out.array("int8_t", row["gpu_switch"])
    link_array = out.array("uint8_t", [", ".join(map(str, line)) for line in counts])
    nic_array = out.array("Nic", places)
    return (f"{{{text(row['name'])}, Fabric::{FABRIC[row['fabric']]}, {gpus}, {row.get('domain_gpus', gpus)}, "
            f"{numa_nodes}, {row['pcie']}, Path::{PATH[row.get('switch_link', 'PIX')]}, "
            f"Path::{PATH[row.get('host_link', 'NODE')]}, {text(row['cpu'])}, {cpu['link_mb_s']}, "
            f"{cpu['root_permille']}, {numa_array}, {switch_array}, {link_array}, {nic_array}, "
            f"{text(pending)}, {text(row['source'])}}}")


def write_profile(key, shape, profile, confirmed, where):
    fields(profile, PROFILE_FIELDS, set(), where)
    match = PROFILE_NAME.match(profile["name"])
    need(match, where, f"{profile['name']!r} is no profile name such as 1g.10gb+me")
    need(int(match[1]) == shape["compute"], where, f"{profile['name']} must have {shape['compute']} compute slices")
    attributes = "".join(re.findall(r"[+-].*", key.removesuffix("-double")))
    need((match[3] or "") == attributes, where, f"{profile['name']} must end in {attributes!r}")
    engines = profile["engines"]
    shown = "{}"
    if engines is not None:
        need(len(engines) == 5, where, "engines must be copy, decoder, encoder, jpeg, ofa")
        shown = "{true, " + ", ".join(str(number(e, f"{where}: engines", 0, 32)) for e in engines) + "}"
    starts = sum(1 << start for start in shape["starts"])
    graphics = "true" if shape.get("graphics") else "false"
    memory = known(profile["memory_mib"], f"{where}: memory_mib", 1, 1 << 20)
    units = known(profile["units"], f"{where}: units", 1, 1024)
    return (f"{{{text(profile['name'])}, {shape['compute']}, {shape['memory']}, {starts:#x}, {shape['max']}, "
            f"Media::{MEDIA[shape['media']]}, {graphics}, base::Mib({memory}), {units}, {shape['smi_id']}, "
            f"{shown}, {'true' if confirmed else 'false'}}}")


def write_mig(mig, grids, where, out):
    fields(mig, MIG_FIELDS, set(), where)
    need(mig["grid"] in grids, where, f"no grid is called {mig['grid']}")
    grid = grids[mig["grid"]]
    keys = list(grid["profiles"])
    need(list(mig["profiles"]) == keys, where, f"profiles must be {', '.join(keys)}, in this order")
    pending = unconfirmed(mig, PROFILE_FIELDS | {"smi_id"} | set(keys), where)
    names = [mig["profiles"][key]["name"] for key in keys]
    need(len(names) == len(set(names)), where, "two profiles have one name")
    profiles, slots = [], []
    for index, key in enumerate(keys):
        shape = grid["profiles"][key]
        profiles.append(write_profile(key, shape, mig["profiles"][key], key not in pending, f"{where}: {key}"))
        for start in shape["starts"]:
            mask = ((1 << shape["memory"]) - 1) << start
            slots.append(f"{{{index}, {start}, {shape['memory']}, {mask:#x}}}")
    profile_array = out.array("MigProfile", profiles)
    slot_array = out.array("MigSlot", slots)
    out.count += 1
    name = f"kMig{out.count}"
    out.lines.append(f"constexpr MigTable {name} = {{{grid['compute']}, {grid['memory']}, {profile_array}, {slot_array}, "
                     f"{text(', '.join(pending))}, {text(mig['source'])}}};")
    return f"&{name}"


def write_boards(row, servers, where, out):
    boards = []
    need(row["boards"], where, "needs a board")
    for board in row["boards"]:
        at = f"{where}: board {board.get('name')}"
        fields(board, BOARD_FIELDS, {"units"}, at)
        need(board["server"] in servers, at, f"no server is called {board['server']}")
        power = board["power"]
        fields(power, {"default", "min", "max"}, set(), f"{at}: power")
        default = number(power["default"], f"{at}: power.default", 1, 10000)
        least = known(power["min"], f"{at}: power.min", 1, default)
        most = number(power["max"], f"{at}: power.max", default, 10000)
        for pci in board["pci"]:
            need(isinstance(pci, str) and re.match(r"[0-9a-f]{4}$", pci), at, f"PCI id {pci!r} must be four hex digits")
        pending = ", ".join(unconfirmed(board, board.keys(), at))
        labels = out.array("std::string_view", [text(label) for label in board["labels"]])
        ids = out.array("uint16_t", [f"0x{pci}" for pci in board["pci"]])
        units = number(board.get("units", row["units"]), f"{at}: units", 1, 1024)
        boards.append(f"{{{text(board['name'])}, {labels}, {ids}, {units}, {{{default}, {least}, {most}}}, "
                      f"&kServerTable[{servers.index(board['server'])}], {text(pending)}, {text(board['source'])}}}")
    return out.array("Board", boards)


def write_partitions(rows, where, out):
    def modes(names):
        return sum(1 << int(name.removeprefix("NPS")) for name in names)

    shown = []
    for row in rows:
        at = f"{where}: partition {row.get('name')}"
        fields(row, PARTITION_FIELDS, set(), at)
        need(set(row["qualified"]) <= set(row["memory_modes"]), at, "qualified must be among memory_modes")
        for mode in row["memory_modes"]:
            need(mode in ("NPS1", "NPS2", "NPS4"), at, f"no memory mode is called {mode}")
        shown.append(f"{{{text(row['name'])}, {number(row['partitions'], at, 1, 16)}, {number(row['units'], at, 1, 1024)}, "
                     f"{modes(row['memory_modes'])}, {modes(row['qualified'])}, {text(row['source'])}}}")
    return out.array("ComputePartition", shown)


def write_link(link, where):
    if link == {"kind": "none"}:
        return "{}"
    fields(link, LINK_FIELDS, set(), where)
    need(link["kind"] in ("nvlink", "xgmi"), where, "kind must be nvlink, xgmi or none")
    need(link["effective_mb_s"] <= link["raw_mb_s"], where, "effective_mb_s is more than raw_mb_s")
    kind = "kNvlink" if link["kind"] == "nvlink" else "kXgmi"
    return (f"{{Interconnect::{kind}, {number(link['generation'], where, 1, 9)}, {number(link['links'], where, 1, 32)}, "
            f"{link['raw_mb_s']}, {link['effective_mb_s']}}}")


def write_model(index, row, file, grids, servers, out):
    where = f"{file}: {row.get('name')}"
    fields(row, MODEL_FIELDS, {"mig", "partitions"}, where)
    vendor, _ = VENDORS[file]
    major, minor = str(row["compute_capability"]).split(".")
    memory = number(row["memory_mib"], f"{where}: memory_mib", 1024, 1 << 20)
    reserved = known(row["reserved_mib"], f"{where}: reserved_mib", 1, memory // 10)
    pending = ", ".join(unconfirmed(row, row.keys(), where))
    aliases = out.array("std::string_view", [text(alias) for alias in row["aliases"]])
    boards = write_boards(row, servers, where, out)
    mig = write_mig(row["mig"], grids, f"{where}: mig", out) if "mig" in row else "nullptr"
    partitions = write_partitions(row.get("partitions", []), where, out)
    return (f"{{{index}, {text(row['name'])}, Vendor::{vendor}, {aliases}, {text(row['architecture'])}, "
            f"{text(row['family'])}, {major}, {minor}, base::Mib({memory}), base::Mib({reserved}), "
            f"{number(row['units'], f'{where}: units', 1, 1024)}, {write_link(row['link'], f'{where}: link')}, {boards}, "
            f"{mig}, {partitions}, {text(pending)}, {text(row['source'])}}}")


def collect_aliases(models):
    """Normalised name, alias, label or PCI id -> (model, board); each may stand for one board only."""
    keys = {}

    def add(key, model, board, where):
        at = (model, board)
        taken = keys.setdefault(key, (at, where))
        need(taken[0] == at, where, f"{key!r} already stands for {taken[1]}")

    for index, (file, row) in enumerate(models):
        where = f"{file}: {row['name']}"
        for name in [row["name"], *row["aliases"]]:
            add(normalise(name), index, 0, where)
        for number_, board in enumerate(row["boards"]):
            at = f"{where}: board {board['name']}"
            for label in board["labels"]:
                add(normalise(label), index, number_, at)
            for pci in board["pci"]:
                add(f"{VENDORS[file][1]}:{pci}", index, number_, at)
    return sorted((key, at[0], at[1]) for key, (at, _) in keys.items())


def generate(data):
    grids = check_grids(load(data, "mig.yaml")["grids"])
    server_file = load(data, "servers.yaml")
    for name, cpu in server_file["cpus"].items():
        fields(cpu, CPU_FIELDS, set(), f"servers.yaml: cpu {name}")
    models = [(file, row) for file in VENDORS for row in load(data, file)["models"]]
    servers = [row.get("name") for row in server_file["servers"]]
    need(len(servers) == len(set(servers)), "servers.yaml", "two servers have one name")
    out = Writer()
    server_rows = [write_server(row, server_file["cpus"], out) for row in server_file["servers"]]
    out.lines += ["constexpr Server kServerTable[] = {", *[f"    {row}," for row in server_rows], "};"]
    model_rows = [write_model(i, row, file, grids, servers, out) for i, (file, row) in enumerate(models)]
    out.lines += ["constexpr Model kModelTable[] = {", *[f"    {row}," for row in model_rows], "};"]
    aliases = [f"{{{text(key)}, {model}, {board}}}" for key, model, board in collect_aliases(models)]
    alias_array = out.array("Alias", aliases)
    return "\n".join([
        "// Written by src/gpu/data/generate.py from src/gpu/data/*.yaml; change those.",
        '#include "gpu/tables.h"', "", "namespace tessera::gpu::tables {", "namespace {", "", *out.lines, "",
        "}  // namespace", "", "const std::span<const Model> kModels(kModelTable);",
        "const std::span<const Server> kServers(kServerTable);",
        f"const std::span<const Alias> kAliases({alias_array});", "", "}  // namespace tessera::gpu::tables", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", required=True)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    try:
        result = generate(options.data)
    except Mistake as mistake:
        sys.exit(f"generate.py: {mistake}")
    except (KeyError, TypeError, AttributeError, ValueError) as problem:
        sys.exit(f"generate.py: {options.data}: a row has a wrong shape ({type(problem).__name__}: {problem})")
    os.makedirs(os.path.dirname(options.out) or ".", exist_ok=True)
    with open(options.out, "w", encoding="utf-8") as file:
        file.write(result)


if __name__ == "__main__":
    main()
