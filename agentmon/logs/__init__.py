"""Reading what programs wrote: by offset, never whole, and made safe to draw; standard library only."""
