"""Values, life cycles, events, errors and the clock; standard library only, no input or output."""
