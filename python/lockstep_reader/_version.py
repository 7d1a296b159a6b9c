"""The version of lockstep that this reader belongs to. It reads what earlier versions wrote, too."""
VERSION = "0.1.0"
