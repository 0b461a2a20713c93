"""What holds evictions back although they are due: state, event and time in, an instant out."""
