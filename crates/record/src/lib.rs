//! What a run leaves behind: trials, intervals, samples, marks, and the directory that holds them.
