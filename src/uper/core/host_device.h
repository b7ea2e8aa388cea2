#pragma once

// Marks the small formulas that the CUDA learner shares with the host code.
#ifdef __CUDACC__
#define UPER_HOST_DEVICE __host__ __device__
#else
#define UPER_HOST_DEVICE
#endif
