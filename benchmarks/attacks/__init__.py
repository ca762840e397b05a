"""What attackers gain: attacks on a started broker, console and store of this machine, each bounded, each told in one line."""
