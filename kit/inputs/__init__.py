"""What people have, opened and cut into JSON documents: whatever it is called, however it is packed and laid out."""
