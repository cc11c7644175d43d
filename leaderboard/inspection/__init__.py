"""What readers are shown of an entry: its rankings, what these say of the protocol, its numbers by group.

All of it is computed from what the store and the file store hold, when it is first needed, and kept in the
store: entries that stood on a board before are shown like new ones. Of a sealed board there is nothing here.
"""
