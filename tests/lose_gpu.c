/* Preloaded into the program, takes its GPU away: LOSE_GPU_AFTER seconds after the start a kernel
   that traps runs in the program's own context. From then on every call of CUDA fails there, as when
   the GPU has fallen off the bus. Needs neither CUDA's headers nor its compiler. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static const char kTrap[] =
    ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry lose() {\n  trap;\n}\n";

typedef int (*Any)();

static void *Lose(void *after) {
  usleep((useconds_t)(1e6 * atof(after)));
  void *driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver == NULL) return NULL;
  void *context, *module, *function;
  int error = ((Any)dlsym(driver, "cuInit"))(0);
  if (!error) error = ((Any)dlsym(driver, "cuDevicePrimaryCtxRetain"))(&context, 0);
  if (!error) error = ((Any)dlsym(driver, "cuCtxSetCurrent"))(context);
  if (!error) error = ((Any)dlsym(driver, "cuModuleLoadData"))(&module, kTrap);
  if (!error) error = ((Any)dlsym(driver, "cuModuleGetFunction"))(&function, module, "lose");
  if (!error) {
    int (*launch)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,
                  void **, void **) = dlsym(driver, "cuLaunchKernel");
    error = launch(function, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
  }
  fprintf(stderr, "lose_gpu: %d\n", error); /* 0: it is lost now */
  return NULL;
}

__attribute__((constructor)) static void Begin(void) {
  const char *after = getenv("LOSE_GPU_AFTER");
  pthread_t thread;
  if (after != NULL) pthread_create(&thread, NULL, Lose, (void *)after);
}
