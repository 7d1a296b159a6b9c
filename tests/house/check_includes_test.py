"""check_includes.py: each rule, with a small tree that breaks it and one that does not."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "check_includes.py"

README = """
| level | room | folders | job | may use |
|---|---|---|---|---|
| 0 | `core` | - | base | - |
| 1 | `data` | `store`, `.`, `input` | readers | core |
| 1 | `graph` | - | models | core |
| 2 | `cli` | - | program | all |

| public header | room |
|---|---|
| `error`, `tensor` | core |
| `graph` | graph |

| foreign header | only in |
|---|---|
| `fmt/*` | `*` |
| `png.h` | `data/*.cpp` |

| header of one side | only in |
|---|---|
| `graph/gpu/*` | `graph/gpu/*`, `*_gpu.cpp` |
"""
CMAKE = "lockstep_room(core LINKS fmt::fmt)\nlockstep_room(data USES core\n  LINKS PNG::PNG)\n"
TREE = {
    "src/README.md": README,
    "src/CMakeLists.txt": CMAKE,
    "include/lockstep/error.hpp": "#include <string>\n",
    "include/lockstep/tensor.hpp": '#include "lockstep/error.hpp"\n',
    "include/lockstep/graph.hpp": '#include "lockstep/tensor.hpp"\n',
    "src/core/digest.hpp": "#include <sys/stat.h>\n#include <vector>\n#include <fmt/format.h>\n",
    "src/data/png.cpp": '#include <png.h>\n#include "core/digest.hpp"\n#include "lockstep/tensor.hpp"\n',
    "src/graph/model.cpp": '#include "lockstep/graph.hpp"\n',
    "src/cli/main.cpp": '#include "lockstep/graph.hpp"\n#include "core/digest.hpp"\n',
}


def check(changes):
    """The script's output lines for TREE with `changes`."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {**TREE, **changes}.items():
            path = pathlib.Path(folder, name)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        done = subprocess.run([sys.executable, SCRIPT, folder], capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert done.returncode == (1 if lines else 0), done
    assert not done.stderr, done.stderr
    return lines


class CheckIncludes(unittest.TestCase):
    def expect(self, changes, *lines):
        self.assertEqual(check(changes), list(lines))

    def test_a_good_tree_passes(self):
        self.expect({})

    def test_a_room_outside_the_row(self):
        self.expect({"src/data/png.cpp": '#include "core/digest.hpp"\n#include "graph/model.hpp"\n',
                     "src/graph/model.hpp": ""},
                    "src/data/png.cpp:2: room 'data' includes \"graph/model.hpp\" of room 'graph'; it may use: core")

    def test_a_folder_that_comes_later(self):
        later = {"src/data/input/schema.hpp": '#include "data/png.hpp"\n#include "data/store/client.hpp"\n',
                 "src/data/png.hpp": '#include "data/store/client.hpp"\n', "src/data/store/client.hpp": ""}
        self.expect(later)
        self.expect({**later, "src/data/png.cpp": '#include "data/input/schema.hpp"\n'},
                    "src/data/png.cpp:1: '.' of room 'data' includes \"data/input/schema.hpp\" of its folder 'input', "
                    "which comes after it")
        self.expect({**later, "src/CMakeLists.txt": "lockstep_room(data/store USES core data)\n"},
                    "src/CMakeLists.txt:1: 'data/store' links 'data', which comes after it in src/README.md")

    def test_a_public_header_of_a_room_outside_the_row(self):
        self.expect({"src/data/png.cpp": '#include "lockstep/graph.hpp"\n'},
                    "src/data/png.cpp:1: room 'data' includes \"lockstep/graph.hpp\" of room 'graph'; "
                    "it may use: core")

    def test_upward_include_between_public_headers(self):
        self.expect({"include/lockstep/error.hpp": '#include "lockstep/graph.hpp"\n'},
                    "include/lockstep/error.hpp:1: room 'core' includes \"lockstep/graph.hpp\" of room 'graph'; "
                    "it may use: no other room")

    def test_public_headers_include_nothing_of_src(self):
        self.expect({"include/lockstep/tensor.hpp": '#include "core/digest.hpp"\n'},
                    "include/lockstep/tensor.hpp:1: public header includes \"core/digest.hpp\": "
                    "only other public headers are allowed")

    def test_public_headers_include_nothing_foreign(self):
        self.expect({"include/lockstep/tensor.hpp": "#include <vector>\n#include <fmt/format.h>\n"},
                    "include/lockstep/tensor.hpp:2: public header includes <fmt/format.h>: "
                    "only the standard library is allowed there")

    def test_a_public_header_without_a_row(self):
        self.expect({"include/lockstep/extra.hpp": ""},
                    "include/lockstep/extra.hpp:1: has no row in the table of public headers in src/README.md")

    def test_foreign_headers_stay_behind_their_door(self):
        self.expect({"src/graph/model.cpp": "#  include <png.h>\n"},
                    "src/graph/model.cpp:1: <png.h> may be included only in: data/*.cpp")
        self.expect({"src/graph/model.cpp": "#include <mpi.h>\n"},
                    "src/graph/model.cpp:1: <mpi.h> stands in no row of the table of foreign headers in "
                    "src/README.md")

    def test_headers_of_one_side_stay_there(self):
        header = {"src/graph/gpu/driver.hpp": ""}
        self.expect({**header, "src/graph/model_gpu.cpp": '#include "graph/gpu/driver.hpp"\n'})
        self.expect({**header, "src/graph/model.cpp": '#include "graph/gpu/driver.hpp"\n'},
                    "src/graph/model.cpp:1: \"graph/gpu/driver.hpp\" may be included only in: graph/gpu/*, *_gpu.cpp")

    def test_paths_are_written_from_src(self):
        self.expect({"src/core/digest.cpp": '#include "digest.hpp"\n'},
                    "src/core/digest.cpp:1: \"digest.hpp\" is not found: write the path from src/ or include/")

    def test_a_room_without_a_row(self):
        self.expect({"src/attic/old.cpp": ""}, "src/attic/old.cpp:1: room 'attic' has no row in src/README.md")

    def test_cmake_links_only_the_row(self):
        self.expect({"src/CMakeLists.txt": CMAKE + "lockstep_room(graph USES core data)\n"},
                    "src/CMakeLists.txt:4: room 'graph' links 'data', which is not in its row of src/README.md")

    def test_the_table_itself_goes_downward(self):
        self.expect({"src/README.md": README.replace("| readers | core |", "| readers | core, graph |")},
                    "src/README.md:1: room 'data' (level 1) may not use 'graph' (level 1): only lower levels")

    def test_a_missing_table_is_noticed(self):
        self.expect({"src/README.md": README.replace("| foreign header |", "| header |")},
                    "src/README.md:1: one of the three tables (level, public header, foreign header) is missing")


if __name__ == "__main__":
    unittest.main()
