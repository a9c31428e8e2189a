"""How the training itself uses the GPU: its precision, and time after it stopped improving."""
