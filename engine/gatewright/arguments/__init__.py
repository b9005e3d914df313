"""What texts from a model mean: paths, URLs, hosts. It resolves no name and knows no disk and no policy."""
