#!/usr/bin/env python3
"""An archive is the folder that unpacking it would leave: the same samples and the same digest, for archives of Python and
of GNU tar, whatever the names, and for links, sparse files and names that are there twice."""
import io
import os
import pathlib
import stat
import subprocess
import tarfile
import tempfile
import unittest
import zipfile
import zlib

import make_data

PROGRAM = os.environ["LOCKSTEP"]
LONG = "long " * 30  # with a file's name more than ustar's 256 bytes


def sparse_png(value, hole):
    """With a chunk of zeros, which a file system can leave out."""
    image = make_data.png(8, 8, value)
    body = b"zeRo" + bytes(hole)
    return image[:33] + hole.to_bytes(4, "big") + body + zlib.crc32(body).to_bytes(4, "big") + image[33:]


class Archives(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)

    def tearDown(self):
        self.temporary.cleanup()

    def write(self, **files):
        for name, contents in files.items():
            path = self.folder / "set" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents)

    def info(self, path, *words, code=0):
        result = subprocess.run([PROGRAM, "data", "info", f"images={path}", *words], cwd=self.folder, capture_output=True,
                                text=True, timeout=120, check=False, stdin=subprocess.DEVNULL,
                                env={**os.environ, "LOCKSTEP_CACHE": "none"})
        self.assertEqual(result.returncode, code, f"{path}: {result.stdout}\n{result.stderr}")
        return result.stdout if code == 0 else result.stderr

    def judged(self, path, *words):
        """What a set holds: samples, classes, what is skipped, digest."""
        lines = self.info(path, *words).splitlines()
        keep = [line for line in lines if line.startswith("  ") and line.split()[0] not in ("source", "bytes", "warning", "index")]
        return [line.replace(", which is not in the archive", ": No such file or directory") for line in keep]

    def odd_names(self):
        names = ["катя/фото.png", "дом/été ñ.png", "a b/ c.png", "a b/new\nline.png", f"{LONG}x/{LONG}.png", "q'\"/%41&.PNG"]
        self.write(**{name: make_data.png(8, 8, 3 * i) for i, name in enumerate(names)})

    def links(self):
        (self.folder / "set/a b/soft.png").symlink_to("../катя/фото.png")
        (self.folder / "set/a b/chain.png").symlink_to("soft.png")
        os.link(self.folder / "set/катя/фото.png", self.folder / "set/дом/hard.png")
        (self.folder / "set/alias").symlink_to("a b")  # a class of its own

    def zip(self, path):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in sorted((self.folder / "set").rglob("*")):
                name = str(file.relative_to(self.folder / "set"))
                if file.is_symlink():
                    entry = zipfile.ZipInfo(name)
                    entry.create_system, entry.external_attr = 3, (stat.S_IFLNK | 0o777) << 16
                    archive.writestr(entry, os.readlink(file))
                elif file.is_file():
                    archive.write(file, name)

    def test_odd_names_and_links(self):
        self.odd_names()
        self.links()
        expected = self.judged("set")
        self.assertIn("  samples      13", expected)
        for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            for mode in ("w", "w:gz", "w:xz"):
                with tarfile.open(self.folder / "a.tar", mode, format=form) as archive:
                    archive.add(self.folder / "set", arcname=".")
                self.assertEqual(self.judged("a.tar"), expected, (form, mode))
        for form in ("oldgnu", "gnu", "posix"):
            subprocess.run(["tar", "-C", self.folder / "set", f"--format={form}", "-cf", self.folder / "b.tar", "."], check=True)
            self.assertEqual(self.judged("b.tar"), expected, form)
        self.zip(self.folder / "a.zip")
        self.assertEqual(self.judged("a.zip"), expected)

    def test_letters_that_macos_decomposes(self):
        self.write(**{f"{name}/{i}.png": make_data.png(8, 8, 3 * i)
                      for i, name in enumerate(("k\u00f6pek", "ko\u0308pek", "kedi", "kedi"))})
        expected = self.judged("set")
        self.assertIn("  samples      4", expected)
        self.assertIn("  classes      2", expected)
        for name, form in (("pax.tar", tarfile.PAX_FORMAT), ("gnu.tar.gz", tarfile.GNU_FORMAT)):
            with tarfile.open(self.folder / name, "w:gz" if name.endswith(".gz") else "w", format=form) as archive:
                archive.add(self.folder / "set", ".")
            self.assertEqual(self.judged(name), expected)
        self.zip(self.folder / "set.zip")
        self.assertEqual(self.judged("set.zip"), expected)
        self.write(**{"k\u00f6pek/1.png": make_data.png(8, 8, 9)})
        self.assertEqual(self.info("set", code=65), "lockstep: set: expected files of different names, found two called "
                         "k\u00f6pek/1.png, one with composed letters and one with decomposed ones; rename one\n")

    def test_what_macos_puts_beside_files(self):
        self.write(**{"a/1.png": make_data.png(8, 8, 3), "b/2.png": make_data.png(8, 8, 6)})
        expected = self.judged("set")
        self.write(**{"__MACOSX/a/._1.png": b"other", "a/.DS_Store": b"other"})
        self.assertEqual(self.judged("set"), expected)

    def test_links_that_lead_nowhere_are_bad_samples(self):
        self.write(**{"a/1.png": make_data.png(8, 8, 1), "b/2.png": make_data.png(8, 8, 2)})
        (self.folder / "set/a/gone.png").symlink_to("none.png")
        (self.folder / "set/b/outside.png").symlink_to("/nonexistent/x.png")
        os.mkfifo(self.folder / "set/b/pipe.png")
        (self.folder / "set/b/loop").symlink_to("../b")
        self.assertIn("set: 4 of 6 samples are bad: a/gone.png: a link to none.png: No such file or directory; b/loop: a "
                      "link to ../b, a folder that it lies in; b/outside.png: a link to /nonexistent/x.png: No such file "
                      "or directory; and 1 more. Repair or remove them, or say `bad_samples: skip`",
                      self.info("set", code=65))
        expected = self.judged("set", "bad_samples=skip")
        self.assertIn("               b/pipe.png: neither a file nor a folder", expected)
        with tarfile.open(self.folder / "a.tar", "w") as archive:
            archive.add(self.folder / "set", arcname="set")
        found = [line.replace("set/", "") for line in self.judged("a.tar", "bad_samples=skip")]
        self.assertEqual(found, expected)

    def test_sparse_files(self):
        self.write(**{"a/1.png": sparse_png(1, 1 << 20), "a/2.png": make_data.png(8, 8, 2), "b/3.png": sparse_png(3, 1 << 18)})
        for name, hole in (("a/1.png", 1 << 20), ("b/3.png", 1 << 18)):
            file = self.folder / "set" / name
            contents = file.read_bytes()
            with open(file, "wb") as out:  # zeros that are not written
                out.write(contents[:41])
                out.seek(41 + hole)
                out.write(contents[41 + hole:])
        with open(self.folder / "set/a/2.png", "ab") as out:  # one hole, up to the end
            out.truncate(1 << 19)
        if (self.folder / "set/a/1.png").stat().st_blocks * 512 >= 1 << 20:
            self.skipTest("this file system has no sparse files")
        expected = self.judged("set")
        for form in (["gnu"], ["posix", "--sparse-version=0.0"], ["posix", "--sparse-version=0.1"],
                     ["posix", "--sparse-version=1.0"]):
            subprocess.run(["tar", "-S", "-C", self.folder / "set", f"--format={form[0]}", *form[1:], "-cf",
                            self.folder / "a.tar", "."], check=True)
            self.assertLess((self.folder / "a.tar").stat().st_size, 1 << 18)
            self.assertEqual(self.judged("a.tar"), expected, form)
            subprocess.run(["gzip", "-kf", self.folder / "a.tar"], check=True)
            self.assertEqual(self.judged("a.tar.gz"), expected, form)

    def test_a_name_that_is_there_twice_counts_once(self):
        images = {"a/1.png": make_data.png(8, 8, 1), "b/2.png": make_data.png(8, 8, 2)}
        self.write(**images)
        for path, mode in (("a.tar", "w"), ("a.tar.gz", "w:gz")):
            with tarfile.open(self.folder / path, mode) as archive:
                for value in (100, None):  # the last one counts, as `tar -r` has it
                    for name, contents in images.items():
                        entry = tarfile.TarInfo(name)
                        data = contents if value is None else make_data.png(8, 8, value)
                        entry.size = len(data)
                        archive.addfile(entry, io.BytesIO(data))
            self.assertEqual(self.judged(path), self.judged("set"))
            self.assertIn(f"  warning      {path}: 2 names are in it twice, such as a/1.png; the last of each is read, as it "
                          "would be after unpacking\n", self.info(path))

    def test_a_tar_without_its_end_mark_is_read(self):
        self.write(**{"a/1.png": make_data.png(8, 8, 1), "b/2.png": make_data.png(8, 8, 2)})
        with tarfile.open(self.folder / "a.tar", "w") as archive:
            archive.add(self.folder / "set", arcname=".")
        whole = self.judged("a.tar")
        contents = (self.folder / "a.tar").read_bytes().rstrip(b"\0")
        (self.folder / "a.tar").write_bytes(contents + bytes(-len(contents) % 512))
        self.assertEqual(self.judged("a.tar"), whole)
        self.assertIn("  warning      a.tar: a tar without its end mark; if it was cut off, files are missing\n",
                      self.info("a.tar"))
        subprocess.run(["gzip", "-k", self.folder / "a.tar"], check=True)
        self.assertEqual(self.judged("a.tar.gz"), whole)

    def test_joined_tars(self):
        for name in ("a", "b"):
            self.write(**{f"{name}/1.png": make_data.png(8, 8, 1)})
            with tarfile.open(self.folder / f"{name}.tar", "w") as archive:
                archive.add(self.folder / "set" / name, arcname=name)
        self.assertEqual([line for line in self.info("a.tar").splitlines() if "warning" in line],
                         ["  warning      all 1 samples are of one class, 'a': there is nothing to tell apart, and every "
                          "model is right"])
        (self.folder / "ab.tar").write_bytes((self.folder / "a.tar").read_bytes() + (self.folder / "b.tar").read_bytes())
        self.assertIn("  warning      ab.tar: what is behind the end mark of the tar is not read; if tars were joined, unpack "
                      "them and make one of all\n", self.info("ab.tar"))

    def test_gzip_is_whole(self):
        """libarchive stops at the end mark of the tar and compares no sum."""
        self.write(**{"a/1.png": make_data.png(8, 8, 1), "b/2.png": make_data.png(8, 8, 2)})
        with tarfile.open(self.folder / "a.tar.gz", "w:gz") as archive:
            archive.add(self.folder / "set", arcname=".")
        packed = bytearray((self.folder / "a.tar.gz").read_bytes())
        packed[-6] ^= 1
        (self.folder / "a.tar.gz").write_bytes(packed)
        self.assertEqual(self.info("a.tar.gz", code=65), "lockstep: a.tar.gz: damaged gzip file (incorrect data check)\n")

    def test_hidden_images_are_named(self):
        self.write(**{"a/1.png": make_data.png(8, 8, 1), "a/.2.png": make_data.png(8, 8, 2), "a/._1.png": b"of macOS",
                      "a/.DS_Store": b"of macOS"})
        self.assertIn("  warning      set: 1 image is not read, since a name that begins with a dot is hidden: a/.2.png\n",
                      self.info("set"))


if __name__ == "__main__":
    unittest.main()
