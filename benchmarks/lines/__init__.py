"""The lines bench: a viewer's picture through sfud and in a direct call, over the same lines."""
