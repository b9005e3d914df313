"""Reads what texts from a model mean: paths, URLs, hosts, shell commands.

`arguments/shell.py` reads a command by the allow-list of `[workspace] shell` and writes it anew;
`arguments/shell_word.py` reads its words and the texts that they may become, `arguments/shell_program.py` knows the
programs that start others, `arguments/shell_judge.py` judges programs, words and variables. `arguments/path.py` also
finds the paths for which a program may take a text.
"""
