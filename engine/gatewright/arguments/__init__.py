"""Reads what texts from a model mean: paths, URLs, hosts, shell commands.

`arguments/shell.py` reads a command by the allow-list of `[workspace] shell` and writes it anew:
`arguments/shell_word.py` its words and the texts that they may become,
`arguments/shell_program.py` which programs start others; `arguments/shell_judge.py` judges programs, words and
variables. `arguments/path.py` also reads off a text which paths a program may take it for.
"""
