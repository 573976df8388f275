"""The package beside others."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(__file__).resolve().parents[1]


class PackageTests(unittest.TestCase):
    def test_generated_code_in_another_folder_can_be_imported(self):
        with tempfile.TemporaryDirectory() as folder:
            generated = pathlib.Path(folder, "martlet", "v1")
            generated.mkdir(parents=True)
            (generated / "transaction_pb2.py").write_text("NAME = 'generated'\n")
            for paths in ([str(SOURCE), folder], [folder, str(SOURCE)]):
                program = "\n".join([
                    f"import sys; sys.path[:0] = {paths!r}",
                    "import martlet",
                    "from martlet.v1 import transaction_pb2",
                    "print(transaction_pb2.NAME, martlet.SYNC_AUTHOR)",
                ])
                made = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
                self.assertEqual(made.stdout.split(), ["generated", "martlet.sync"], made.stderr)


if __name__ == "__main__":
    unittest.main()
