"""Writes into the registry, so that it lists a model whole or not at all, whatever happens.

Layout, as ``loop pull`` leaves it: HOME/blobs/sha256-<hex>, and in HOME/models/<directory>/ a
relative link per file beside manifest.json. Only the manifest makes a directory a model, so it is
written last and taken away first. Any number of processes may write at a time (``locks``).
"""
