"""The version of lockstep that this reader belongs to."""
VERSION = "0.1.0"
