# What developers and packagers run: install, tests, lenses, benchmarks.
