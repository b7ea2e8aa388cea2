#pragma once

// Marks the small formulas that host code and CUDA kernels share.
#ifdef __CUDACC__
#define UPER_HOST_DEVICE __host__ __device__
#else
#define UPER_HOST_DEVICE
#endif
