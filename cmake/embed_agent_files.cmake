# Writes the table of configs/*/*.toml (but for configs/sweeps) as C++ (train/agent_files.h), so that the
# program needs no files.
#   cmake -DCONFIGS=<folder> -DOUTPUT=<file.cc> -P embed_agent_files.cmake
file(GLOB files RELATIVE ${CONFIGS} ${CONFIGS}/*/*.toml)
list(FILTER files EXCLUDE REGEX "^sweeps/")
list(SORT files)
set(rows "")
foreach(file IN LISTS files)
  file(READ ${CONFIGS}/${file} text)
  get_filename_component(protocol ${file} DIRECTORY)
  get_filename_component(agent ${file} NAME_WLE)
  string(APPEND rows "    {\"${protocol}\", \"${agent}\", R\"~~~(${text})~~~\"},\n")
endforeach()
file(WRITE ${OUTPUT} "#include \"uper/train/agent_files.h\"

namespace uper {
namespace {

constexpr AgentFile kFiles[] = {
${rows}};

}  // namespace

std::span<const AgentFile> AgentFiles() { return kFiles; }

}  // namespace uper
")
