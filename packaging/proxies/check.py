#!/usr/bin/env python3
"""Checks that docs/src/guide/proxies.md quotes the files of this folder as they are."""

import sys
from pathlib import Path

FOLDER = Path(__file__).parent
PAGE = FOLDER / "../../docs/src/guide/proxies.md"
FILES = ["nginx.conf", "Caddyfile", "traefik.yml", "traefik-snowmelt.yml"]

page = PAGE.read_text()
other = [name for name in FILES if f"\n{(FOLDER / name).read_text().rstrip()}\n```" not in page]
print("\n".join(f"proxies.md quotes another {name}" for name in other) or "all are quoted as they are")
sys.exit(bool(other))
