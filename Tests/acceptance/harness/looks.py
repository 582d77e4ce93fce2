"""Pictures' hues and tones of the publishers, far enough apart to be told from one another."""

ALICE = {"hue": 120, "tone": 700}
BOB = {"hue": 240, "tone": 1000}
CAROL = {"hue": 0, "tone": 1300}
