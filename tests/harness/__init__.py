"""What tests of the whole service share: real worker processes, a feed of made-up clusters, readers of topics."""
