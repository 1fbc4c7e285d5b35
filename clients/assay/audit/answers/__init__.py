"""What an answer says, and what is close to it and wrong. Pure; nothing of graders or probes.

A module that reads one form of answers, or makes their near misses, stands here: `truth` says what
is right for a row and what is certainly not, `wrong` makes near misses of all sorts, and the others
know one notation each. Who asks, and how a response is worn, stands above.
"""
