"""The command line: words in, a table and an exit code out. Hydra's configs come in here and go no further than
``build``; a sweep's parent reads what its cells left in their folders."""
