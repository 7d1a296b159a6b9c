#!/usr/bin/env python3
"""Packs the program with all its libraries, including Open MPI, for machines where nothing can be installed.

    scripts/portable.py [--build build/release] [--output build/release] [--program NAME ...]

writes OUTPUT/lockstep-VERSION-portable.tar.gz, to be unpacked anywhere. The target machine must provide the C library
(of this machine's version or later), sh, readlink and dirname; for GPUs NVIDIA's driver and libraries. --program also
packs a program of BUILD/bin, such as a test's. Needs patchelf, and Open MPI 4 as packaged by Debian.

    bin        sh scripts that find out where Open MPI is now and start the programs below
    libexec    lockstep, mpirun, orted
    lib        libraries; lib/lockstep: the CUDA module, lib/*/openmpi: Open MPI's own parts
    share      as after `make install`, and Open MPI's texts
"""
import argparse
import functools
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
C_LIBRARY = re.compile(r"(ld-linux.*|lib(c|m|mvec|pthread|dl|rt|resolv|util|anl|nsl|nss_.*)\.so\.\d+|linux-vdso.*)$")
NVIDIA = re.compile(r"lib(cuda|cudart|cublas|cublasLt|cudnn.*|nccl|nvrtc|nvJitLink)\.so\.\d+$")
# MPI carries few bytes besides NCCL's: memory and sockets suffice, and these libraries fit the adapters of one cluster.
FABRICS = re.compile(r"lib(ucp|uct|ucs|fabric|psm2?|psm_infinipath|ibverbs|rdmacm)\.so\.\d+$")
START = """\
#!/bin/sh
# The programs of lockstep stand in ../libexec, their libraries in ../lib; Open MPI asks the environment where it is.
here=$(dirname "$(dirname "$(readlink -f "$0")")")
export OPAL_PREFIX="$here" OPAL_SYSCONFDIR="$here/etc/openmpi" PMIX_INSTALL_PREFIX="$here"
export PATH="$here/bin:$PATH"
{more}exec "$here/libexec/{name}" "$@"
"""
# mpirun needs a way to start programs on other hosts. If there is none, it is restricted to this host.
WITHOUT_SSH = """\
command -v ssh >/dev/null || [ -n "${OMPI_MCA_plm_rsh_agent:-}${OMPI_MCA_plm:-}" ] || export OMPI_MCA_plm=isolated
"""


def output(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def die(text):
    sys.exit(f"portable: {text}")


@functools.cache
def libraries(file):
    """The paths of all libraries that `file` needs, by name; "not" for those that are not found."""
    return dict(re.findall(r"^\s+(\S+) => (/\S+|not)", output("ldd", str(file)), re.MULTILINE))


def wanted(file):
    """The libraries of `file` that are packed."""
    found = {name: path for name, path in libraries(file).items() if not C_LIBRARY.match(name) and not NVIDIA.match(name)}
    if missing := [name for name, path in found.items() if path == "not"]:
        die(f"{file}: expected the libraries that it needs, found no {', '.join(missing)}")
    return found


def open_mpi():
    """Open MPI's prefix, and the folder of its plugins. OPAL_PREFIX moves everything below the prefix."""
    said = output("ompi_info", "--parsable", "--path", "all")
    version = output("mpirun", "--version").splitlines()[0]
    if " 4." not in version:
        die(f"expected Open MPI 4, found {version}, which cannot be moved this way")
    return (pathlib.Path(re.search(r"^path:prefix:(.*)$", said, re.MULTILINE)[1]),
            pathlib.Path(re.search(r"^path:pkglibdir:(.*)$", said, re.MULTILINE)[1]))


class Folder:
    """The folder `top` to be packed."""

    def __init__(self, top):
        self.top = top

    def add(self, file, place, search=()):
        """Adds a file, made to find its libraries wherever the folder is, and these libraries. `search`: further
        folders with libraries, relative to the file's own."""
        to = self.top / place
        if to.exists():
            return
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(os.path.realpath(file), to)
        subprocess.run(["strip", "--strip-unneeded", to], check=True)
        folders = [os.path.relpath(self.top / "lib", to.parent), *search]
        subprocess.run(["patchelf", "--set-rpath", ":".join(f"$ORIGIN/{name}" for name in folders), to], check=True)
        for name, path in wanted(file).items():
            self.add(pathlib.Path(path), pathlib.Path("lib") / name)

    def add_program(self, file, name):
        self.add(file, pathlib.Path("libexec") / name)
        start = self.top / "bin" / name
        start.parent.mkdir(exist_ok=True)
        start.write_text(START.format(name=name, more=WITHOUT_SSH if name == "mpirun" else ""))
        start.chmod(0o755)

    def add_parts(self, files, prefix):
        """Adds plugins, at the same place below the prefix."""
        for file in files:
            if not any(map(FABRICS.match, libraries(file))):
                self.add(file, file.relative_to(prefix))

    def pack(self, archive):
        with tarfile.open(archive, "w:gz") as tar:
            tar.add(self.top, self.top.name)


def glibc(folder):
    """The oldest sufficient version of the C library, as text."""
    files = [str(file) for file in folder.rglob("*") if file.is_file() and file.read_bytes()[:4] == b"\x7fELF"]
    found = re.findall(r"\(GLIBC_([\d.]+)\)", output("objdump", "-T", *files))
    return max(found, key=lambda text: [int(part) for part in text.split(".")])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--output", type=pathlib.Path)
    parser.add_argument("--program", action="append", default=[])
    options = parser.parse_args()
    build = options.build.resolve()
    for tool in ("patchelf", "strip", "objdump", "ompi_info", "mpirun", "orted"):
        if not shutil.which(tool):
            die(f"expected {tool} in PATH, found none; scripts/install-dependencies.sh --portable installs it")
    version = output(build / "bin/lockstep", "version").split()[1]
    prefix, parts = open_mpi()
    with tempfile.TemporaryDirectory(dir=build) as temporary:
        installed = pathlib.Path(temporary) / "installed"
        subprocess.run(["cmake", "--install", build, "--prefix", installed, "--component", "program"], check=True,
                       stdout=subprocess.DEVNULL)
        folder = Folder(pathlib.Path(temporary) / f"lockstep-{version}")
        shutil.copytree(installed / "share", folder.top / "share")
        folder.add_program(installed / "bin/lockstep", "lockstep")
        for module in (installed / "lib/lockstep").glob("*.so"):
            folder.add(module, module.relative_to(installed), search=[".", "cuda"])
        for name in options.program:
            folder.add_program(build / "bin" / name, name)
        for name in ("mpirun", "orted"):
            folder.add_program(pathlib.Path(shutil.which(name)), name)
        folder.add_parts(parts.glob("mca_*.so"), prefix)
        folder.add_parts(pathlib.Path("/usr/lib").glob("*/pmix2/lib/pmix/*.so"), pathlib.Path("/usr"))
        for texts in ("share/openmpi", "share/pmix"):
            if (prefix / texts).is_dir():
                shutil.copytree(prefix / texts, folder.top / texts)
        if pathlib.Path("/etc/openmpi").is_dir():
            shutil.copytree("/etc/openmpi", folder.top / "etc/openmpi")
        archive = (options.output or build) / f"lockstep-{version}-portable.tar.gz"
        folder.pack(archive)
        print(f"{archive}: {archive.stat().st_size / 2**20:.0f} MiB, for machines with glibc {glibc(folder.top)} or later")


if __name__ == "__main__":
    main()
