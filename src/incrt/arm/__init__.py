"""The arm: robots, friction, trajectories, the control law and its shield, and the task made of them."""
