"""Normal series with normal noise: their exact leakage, and the least noise that keeps a
promise."""
