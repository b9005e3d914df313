"""Limits of a WASM run on open files and written bytes, counted by our modules in front of WASI.

A module with places gets `FRONT` in place of the resource-using functions of WASI. `FRONT` calls the functions that
`COUNT` put into its table; `COUNT` looks at the memory of the module, so it can only come later.
"""

from __future__ import annotations

from collections.abc import Mapping

WASI = "wasi_snapshot_preview1"
MOST_FILES = 256
"""Limit of files and folders that a run may hold open."""
MOST_WRITTEN = 256 * 1024 * 1024
"""Limit of bytes that a run may write, and of a file's size."""
MOST_MADE = 10_000
"""Limit of files, folders and links that a run may make."""
COUNTED: Mapping[str, str] = {
    "path_open": "i32 i32 i32 i32 i32 i64 i64 i32 i32",
    "fd_close": "i32",
    "fd_write": "i32 i32 i32 i32",
    "fd_pwrite": "i32 i32 i32 i64 i32",
    "fd_filestat_set_size": "i32 i64",
    "fd_allocate": "i32 i64 i64",
    "path_create_directory": "i32 i32 i32",
    "path_symlink": "i32 i32 i32 i32 i32",
    "path_link": "i32 i32 i32 i32 i32 i32 i32",
}
"""The functions of WASI that use resources, with their parameters."""
_ACCESS, _LARGE, _TOO_MANY, _NO_SPACE, _NO_SUPPORT = 2, 22, 33, 51, 58
"""The errors of WASI: `acces`, `fbig`, `mfile`, `nospc`, `notsup`."""
_FOLDER, _FILE, _LINK = 3, 4, 7
_LOOK = "path_filestat_get"


def _types(parameters: str) -> str:
    return f"(param {parameters}) (result i32)"


def _same(parameters: str) -> str:
    """Pass on every parameter."""
    return " ".join(f"(local.get {number})" for number in range(len(parameters.split())))


def _call_wasi(name: str) -> str:
    """Call WASI's own function with the same parameters."""
    return f"(call ${name} {_same(COUNTED[name])})"


def _make(name: str) -> str:
    """Return a function that makes something, up to the limit."""
    return f"""(func $own_{name} {_types(COUNTED[name])} (local $error i32)
    (if (i32.ge_u (global.get $made) (i32.const {MOST_MADE})) (then (return (i32.const {_NO_SPACE}))))
    (local.set $error {_call_wasi(name)})
    (if (i32.eqz (local.get $error)) (then (global.set $made (i32.add (global.get $made) (i32.const 1)))))
    (local.get $error))"""


def _write(name: str, stored_at: int) -> str:
    """Return a function that writes a list of texts, up to the limit; ``stored_at``: the parameter with the address for
    the number of written bytes.
    """
    return f"""(func $own_{name} {_types(COUNTED[name])} (local $error i32)
    (if (i64.gt_u (i64.add (global.get $written) (call $size (local.get 1) (local.get 2))) (i64.const {MOST_WRITTEN}))
      (then (return (i32.const {_NO_SPACE}))))
    (local.set $error {_call_wasi(name)})
    (if (i32.eqz (local.get $error)) (then (global.set $written
      (i64.add (global.get $written) (i64.load32_u (local.get {stored_at}))))))
    (local.get $error))"""


FRONT = f"""(module (table (export "functions") {len(COUNTED)} {len(COUNTED)} funcref)
  {
    " ".join(
        f'(func (export "{name}") {_types(given)} {_same(given)} (call_indirect {_types(given)} (i32.const {at})))'
        for at, (name, given) in enumerate(COUNTED.items())
    )
})"""
"""Imports of a module in place of functions of WASI, from before the module has a memory for those."""
_WORDS = range(0, 64, 8)
_KEPT_LOCALS = " ".join(f"(local $at{at} i64)" for at in _WORDS)
_KEEP = " ".join(f"(local.set $at{at} (i64.load (i32.const {at})))" for at in _WORDS)
_RESTORE = " ".join(f"(i64.store (i32.const {at}) (local.get $at{at}))" for at in _WORDS)
COUNT = f"""(module
  {" ".join(f'(import "{WASI}" "{name}" (func ${name} {_types(given)}))' for name, given in COUNTED.items())}
  (import "{WASI}" "{_LOOK}" (func $look {_types("i32 i32 i32 i32 i32")}))
  (import "run" "functions" (table {len(COUNTED)} {len(COUNTED)} funcref))
  (import "run" "memory" (memory 0))
  (export "memory" (memory 0))
  (global $held (mut i32) (i32.const 0))
  (global $made (mut i32) (i32.const 0))
  (global $written (mut i64) (i64.const 0))
  (func $own_path_open {_types(COUNTED["path_open"])} (local $error i32) (local $missing i32) (local $kind i32)
    {_KEPT_LOCALS}
    (if (i32.ge_u (global.get $held) (i32.const {MOST_FILES})) (then (return (i32.const {_TOO_MANY}))))
    {_KEEP}
    (local.set $missing
      (call $look (local.get 0) (local.get 1) (local.get 2) (local.get 3) (i32.const 0)))
    (local.set $kind (i32.load8_u (i32.const 16)))
    {_RESTORE}
    (if (local.get $missing)
      (then (if (i32.ge_u (global.get $made) (i32.const {MOST_MADE})) (then (return (i32.const {_NO_SPACE})))))
      (else (if (i32.eqz (i32.or (i32.or (i32.eq (local.get $kind) (i32.const {_FOLDER}))
          (i32.eq (local.get $kind) (i32.const {_FILE}))) (i32.eq (local.get $kind) (i32.const {_LINK}))))
        (then (return (i32.const {_ACCESS}))))))
    (local.set $error {_call_wasi("path_open")})
    (if (i32.eqz (local.get $error)) (then
      (global.set $held (i32.add (global.get $held) (i32.const 1)))
      (global.set $made (i32.add (global.get $made) (i32.ne (local.get $missing) (i32.const 0))))))
    (local.get $error))
  (func $own_fd_close {_types(COUNTED["fd_close"])} (local $error i32)
    (local.set $error {_call_wasi("fd_close")})
    (if (i32.and (i32.eqz (local.get $error)) (i32.ne (global.get $held) (i32.const 0)))
      (then (global.set $held (i32.sub (global.get $held) (i32.const 1)))))
    (local.get $error))
  (func $size (param $list i32) (param $count i32) (result i64) (local $sum i64)
    (block $all (loop $next
      (br_if $all (i32.eqz (local.get $count)))
      (local.set $sum (i64.add (local.get $sum) (i64.load32_u offset=4 (local.get $list))))
      (local.set $list (i32.add (local.get $list) (i32.const 8)))
      (local.set $count (i32.sub (local.get $count) (i32.const 1)))
      (br $next)))
    (local.get $sum))
  {_write("fd_write", 3)}
  {_write("fd_pwrite", 4)}
  (func $own_fd_filestat_set_size {_types(COUNTED["fd_filestat_set_size"])}
    (if (result i32) (i64.gt_u (local.get 1) (i64.const {MOST_WRITTEN}))
      (then (i32.const {_LARGE})) (else {_call_wasi("fd_filestat_set_size")})))
  (func $own_fd_allocate {_types(COUNTED["fd_allocate"])} (i32.const {_NO_SUPPORT}))
  {" ".join(map(_make, ("path_create_directory", "path_symlink", "path_link")))}
  (elem (i32.const 0) func {" ".join(f"$own_{name}" for name in COUNTED)}))"""
"""The functions behind `FRONT`: they call WASI in the name of the run, and count open files, made files and written
bytes. They open only files, folders and links, since opening a pipe would wait for ever. They put the kind of a file
at the beginning of the memory, and restore it afterwards."""
