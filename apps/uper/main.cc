#include "uper/cli/main.h"

int main(int argc, char** argv) { return uper::Main(argc, argv); }
