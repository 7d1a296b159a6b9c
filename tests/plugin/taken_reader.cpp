// A plugin whose reader has the name of a built-in kind of data.
#include <lockstep/plugin.hpp>

void lockstep::add_plugin(Registries& registries) {
  ReaderDef reader;
  reader.name = "images";
  reader.open = [](const ReaderRequest&) { return nullptr; };
  registries.readers.add(std::move(reader));
}
