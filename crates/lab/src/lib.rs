//! Nodes and topologies: build, start, stop, remove.
