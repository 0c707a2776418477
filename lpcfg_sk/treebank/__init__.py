"""Treebanks: columns of trees, reading and writing, binarisation, rare words."""
