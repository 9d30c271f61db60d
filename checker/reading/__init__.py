"""What a spec says of a frame: by graph, by bits of many frames at once, by a circuit."""
