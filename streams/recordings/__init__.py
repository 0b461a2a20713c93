"""Recordings of what went through the topics: records as they were consumed, on disk and back, bounded in memory."""
