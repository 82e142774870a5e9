"""A small rendered world, in which the truth is known: things, scenes, pixels, and phrases about them.

It is a wind tunnel, not a picture of the real world: 72 silhouettes in twelve families, in twelve colours, on eight
grounds. Nothing is downloaded and nothing is random: a set and a number give the same pixels on every machine.
lab/docs/world.md tells what it is for.
"""
