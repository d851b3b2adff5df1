"""What belongs to NVIDIA's world, listed apart from npulens, and how npulens answers for it."""
