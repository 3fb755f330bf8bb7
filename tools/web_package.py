"""Puts files inside scripts for the npm package: `web_package.py SCRIPTS FILES OUT`.

Every file of FILES, and the worker's script made of SCRIPTS, becomes OUT/NAME.js, which exports it by gzip and base64; OUT/index.js
imports each when it is asked for by its path. Scripts are what every bundler carries along.
"""

import base64
import gzip
import json
import re
import sys
from pathlib import Path


def worker(scripts: Path) -> bytes:
    """The worker's script and the decoder that it imports, as one without modules."""
    text = "\n".join((scripts / name).read_text() for name in ["decoder.js", "worker.js"])
    text = re.sub(r'^import \{ Decoder \} from "\./decoder\.js";\n', "", text, flags=re.MULTILINE)
    text = re.sub(r"^export (?=class Decoder )", "", text, flags=re.MULTILINE)
    left = re.search(r"^\s*(import|export)\b.*", text, flags=re.MULTILINE)
    assert not left, f"a script without modules cannot hold: {left[0]}"
    return f'"use strict";\n{text}'.encode()


def main():
    scripts, folder, out = map(Path, sys.argv[1:])
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
    files["worker.js"] = worker(scripts)
    out.mkdir()
    entries = []
    for name, data in files.items():
        text = base64.b64encode(gzip.compress(data, mtime=0)).decode()
        script = f"{Path(name).name}.js"
        (out / script).write_text(f'export default "{text}";\n')
        entries.append(f"  {json.dumps(name)}: () => import({json.dumps(f'./{script}')}),\n")
    (out / "index.js").write_text(f"export const files = {{\n{''.join(entries)}}};\n")


if __name__ == "__main__":
    main()
