"""How the turns of an episode are credited: by themselves, by agent, against their group's."""
