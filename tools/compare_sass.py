#!/usr/bin/env python3
"""Compares the machine code of the CUDA kernels of two builds.

    python3 tools/compare_sass.py OLD NEW

OLD and NEW are build folders (all *.cu.o below them are read) or single object files. A kernel is
identified by a hash of its instructions, relocations, registers, shared memory and constants, not
by its name: renamed functions, types and namespaces make no difference. So this shows whether a
change that should only rename and move code left the kernels as they were. Prints how many kernels
are in both builds, and the names of those that are only in one; the exit status is 0 if there are
none of those.

Both builds need -DCMAKE_CUDA_FLAGS=-no-compress and the same compiler: the script reads the code
directly from the object files and needs no tool of the CUDA toolkit, and no GPU.
"""

import argparse
import collections
import hashlib
import struct
import sys
from pathlib import Path

_EM_CUDA = 190
_FATBIN_MAGIC = struct.pack("<I", 0xBA55ED50)
_REGISTER_COUNT = 0x2F  # EIATTR_REGCOUNT of .nv.info
_SHT_NOBITS = 8


class _Cubin:
    """Sections of a CUDA ELF file that begins at `start` of `data`."""

    def __init__(self, data, start):
        self._data, self._start = data, start
        offset, = struct.unpack_from("<Q", data, start + 40)
        size, count, names = struct.unpack_from("<HHH", data, start + 58)
        self.sections = [struct.unpack_from("<IIQQQQIIQQ", data, start + offset + i * size)
                         for i in range(count)]
        table = self.bytes_of(self.sections[names])
        self.by_name = {table[s[0]:table.index(b"\0", s[0])].decode(): s for s in self.sections}

    def bytes_of(self, section):
        if section[1] == _SHT_NOBITS:
            return b""
        begin = self._start + section[4]
        return self._data[begin:begin + section[5]]

    def registers(self):
        """Register count of each kernel, by name."""
        names = self.bytes_of(self.by_name[".strtab"])
        symbols = self.bytes_of(self.by_name[".symtab"])
        info = self.bytes_of(self.by_name[".nv.info"]) if ".nv.info" in self.by_name else b""
        result, at = {}, 0
        while at < len(info):
            form, attribute, size = struct.unpack_from("<BBH", info, at)
            at += 4
            if form != 4:  # the value is in the header
                continue
            if attribute == _REGISTER_COUNT:
                symbol, count = struct.unpack_from("<II", info, at)
                name, = struct.unpack_from("<I", symbols, 24 * symbol)
                result[names[name:names.index(b"\0", name)].decode()] = count
            at += size
        return result

    def kernels(self):
        """Yields (name, hash of the machine code) of each kernel and device function."""
        registers = self.registers()
        for section, header in self.by_name.items():
            if not section.startswith(".text."):
                continue
            name = section[len(".text."):]
            digest = hashlib.sha256(self.bytes_of(header))
            digest.update(repr(registers.get(name)).encode())
            for prefix in (".rel.text.", ".rela.text."):
                if prefix + name in self.by_name:
                    self._add_relocations(digest, self.by_name[prefix + name])
            for other, values in sorted(self.by_name.items()):
                if other == ".nv.shared." + name:
                    digest.update(f"shared {values[5]}".encode())
                elif other.startswith(".nv.constant") and other.endswith("." + name):
                    digest.update(f"{other.split('.')[2]} {values[5]}".encode())
                    digest.update(self.bytes_of(values))
            yield name, digest.hexdigest()

    def _add_relocations(self, digest, header):
        """Places and types; symbols are numbered by name, which may change."""
        content, size = self.bytes_of(header), header[9]
        for at in range(0, len(content), size):
            offset, info = struct.unpack_from("<QQ", content, at)
            digest.update(struct.pack("<QI", offset, info & 0xFFFFFFFF))
            digest.update(content[at + 16:at + size])


def _kernels_of_object(path):
    data = path.read_bytes()
    found, cubins, at = [], 0, data.find(b"\x7fELF", 1)
    while at >= 0:
        if struct.unpack_from("<H", data, at + 18)[0] == _EM_CUDA:
            cubins += 1
            found += _Cubin(data, at).kernels()
        at = data.find(b"\x7fELF", at + 1)
    if cubins == 0 and _FATBIN_MAGIC in data:
        sys.exit(f"{path}: no code found; configure with -DCMAKE_CUDA_FLAGS=-no-compress")
    return found


def _kernels_of(path):
    """Names of the kernels of a build: hash -> [name]."""
    objects = sorted(path.rglob("*.cu.o")) if path.is_dir() else [path]
    if not objects:
        sys.exit(f"{path}: there are no *.cu.o")
    result = collections.defaultdict(list)
    for file in objects:
        for name, digest in _kernels_of_object(file):
            result[digest].append(f"{file.name}: {name}")
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    arguments = parser.parse_args()
    old, new = _kernels_of(arguments.old), _kernels_of(arguments.new)
    both = 0
    only = {"old": [], "new": []}
    for digest in sorted(old.keys() | new.keys()):
        a, b = old.get(digest, []), new.get(digest, [])
        both += min(len(a), len(b))
        only["old"] += a[len(b):]
        only["new"] += b[len(a):]
    print(f"{both} kernels in both")
    for build, names in only.items():
        print(f"{len(names)} only in {build}")
        for name in sorted(names):
            print(f"  {name}")
    return 1 if only["old"] or only["new"] else 0


if __name__ == "__main__":
    sys.exit(main())
