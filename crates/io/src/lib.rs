//! Bytes between memory and devices: devices, engines, one scheduler per device, cost model, clock
