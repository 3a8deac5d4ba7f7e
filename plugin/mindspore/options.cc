#include "plugin/mindspore/options.h"

#include <exception>
#include <functional>
#include <map>
#include <mutex>
#include <stdexcept>

#include "plugin/mindspore/graph_writer.h"
#include "plugin/mindspore/python_api.h"
#include "plugin/mindspore/rank_world.h"

namespace pipeloom::ms {
namespace {

Options current;

int64_t Number(const std::string& key, const std::string& value, int64_t least) {
  size_t read = 0;
  int64_t number = 0;
  try {
    number = std::stoll(value, &read);
  } catch (const std::logic_error&) {
    read = 0;
  }
  if (read == 0 || read != value.size() || number < least) {
    throw Refused("option " + key + " is '" + value + "'; give a whole number of " + std::to_string(least) +
                  " or more");
  }
  return number;
}

bool Flag(const std::string& key, const std::string& value) {
  if (value != "0" && value != "1") throw Refused("option " + key + " is '" + value + "'; give 0 or 1");
  return value == "1";
}

void Set(const std::string& key, const std::string& value) {
  if (key == "stages") {
    current.stages = static_cast<int>(Number(key, value, 1));
  } else if (key == "schedule") {
    current.schedule = value;
  } else if (key == "threads") {
    current.threads = static_cast<int>(Number(key, value, 1));
  } else if (key == "output_broadcast") {
    current.output_broadcast = Flag(key, value);
  } else if (key == "deadline") {
    current.deadline_ms = 1000 * Number(key, value, 1);
  } else if (key == "dump_dir") {
    current.dump_dir = value;
  } else {
    throw Refused("there is no option '" + key +
                  "'; there are stages, schedule, threads, output_broadcast, deadline, " + "dump_dir");
  }
}

// Runs it; null, or the text of what went wrong, which lives until this thread's next such call.
const char* Guarded(const std::function<void()>& run) {
  thread_local std::string text;
  try {
    run();
    return nullptr;
  } catch (const std::exception& error) {
    text = error.what();
  }
  return text.c_str();
}

}  // namespace

Options CurrentOptions() { return current; }

}  // namespace pipeloom::ms

const char* pipeloom_mindspore_set(const char* key, const char* value) {
  return pipeloom::ms::Guarded([&] { pipeloom::ms::Set(key, value); });
}

const char* pipeloom_mindspore_world(int* rank, int* size) {
  return pipeloom::ms::Guarded(
      [&] { pipeloom::ms::RankWorld::Join(pipeloom::ms::CurrentOptions().deadline_ms, rank, size); });
}

const char* pipeloom_mindspore_end(const char* failure) {
  return pipeloom::ms::Guarded([&] { pipeloom::ms::RankWorld::End(failure); });
}

int pipeloom_mindspore_owns(const char* parameter) { return pipeloom::ms::RankWorld::Owns(parameter); }

const char* pipeloom_mindspore_gather(const char* parameter, void* data, int64_t bytes, int to_rank) {
  return pipeloom::ms::Guarded([&] { pipeloom::ms::RankWorld::Gather(parameter, data, bytes, to_rank); });
}
