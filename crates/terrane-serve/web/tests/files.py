"""A plain static file server that answers range requests, or ignores them, and counts what it hands out."""

import re
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path


class Files:
    """Serves a folder on a free port of this machine."""

    def __init__(self, folder: Path, has_ranges: bool = True):
        self.requests: list[tuple[str, int]] = []
        files = self

        class Handler(SimpleHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript", ".wasm": "application/wasm"}

            def __init__(self, *arguments):
                super().__init__(*arguments, directory=str(folder))

            def do_GET(self):
                path = Path(self.translate_path(self.path))
                if path.is_dir():
                    path /= "index.html"
                if not path.is_file():
                    files.requests.append((self.path, 0))
                    self.send_error(404)
                    return
                data = path.read_bytes()
                asked = has_ranges and re.fullmatch(r"bytes=(\d+)-(\d*)", self.headers.get("Range", ""))
                first, last = 0, len(data) - 1
                if asked:
                    first, last = int(asked[1]), min(int(asked[2] or last), last)
                    self.send_response(206)
                    self.send_header("Content-Range", f"bytes {first}-{last}/{len(data)}")
                else:
                    self.send_response(200)
                part = data[first : last + 1]
                files.requests.append((self.path, len(part)))
                self.send_header("Content-Type", self.guess_type(str(path)))
                self.send_header("Content-Length", str(len(part)))
                self.send_header("Access-Control-Allow-Origin", "*")
                self.end_headers()
                try:
                    self.wfile.write(part)
                except BrokenPipeError:
                    # The page went elsewhere meanwhile.
                    self.close_connection = True

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.address = f"http://127.0.0.1:{self.server.server_address[1]}"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()

    def taken(self, ending: str) -> tuple[int, int]:
        """Requests for files of an ending, and their bytes."""
        found = [count for path, count in self.requests if path.split("?")[0].endswith(ending)]
        return len(found), sum(found)
