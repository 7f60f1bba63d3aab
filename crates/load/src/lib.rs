//! The load engine: lanes, sessions, pacing, connecting, recording.
