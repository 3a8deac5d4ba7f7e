#include "plugin/mindspore/step_program.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>

#include "ir/tensor.h"
#include "pybind11/pybind11.h"

namespace pipeloom::ms {
namespace {

host::TypeId TypeIdOf(int dtype) {
  constexpr host::TypeId kTypes[] = {host::kNumberTypeFloat32, host::kNumberTypeInt32, host::kNumberTypeInt64,
                                     host::kNumberTypeBool};
  return kTypes[dtype];
}

host::tensor::TensorPtr TensorOf(const host::BaseRef& ref) {
  if (host::utils::isa<host::tensor::TensorPtr>(ref)) return host::utils::cast<host::tensor::TensorPtr>(ref);
  throw Refused("an argument of the step is no tensor: " + ref.ToString());
}

}  // namespace

StepProgram::StepProgram(const host::FuncGraphPtr& graph, const Options& options) : world_(&RankWorld::Of(options)) {
  try {
    step_ = ImportGraph(graph, options);
  } catch (const Refused& refused) {
    world_->Refuse(refused.what());
    throw;
  }
  Load(options);
  NoteBindings(graph);
}

void StepProgram::Load(const Options& options) {
  const ::pybind11::gil_scoped_release release;
  pipeloom_compile_options compile;
  pipeloom_compile_options_init(&compile);
  compile.dump_dir = options.dump_dir.c_str();
  pipeloom_program* program = nullptr;
  if (const int code = pipeloom_compile(step_.module.get(), &compile, &program); code != PIPELOOM_OK) {
    const std::string text = pipeloom_last_error();
    world_->Refuse(text);
    throw Refused(text);
  }
  program_.reset(program);
  Check(pipeloom_session_load(world_->session(), program, &loaded_));
}

void StepProgram::NoteBindings(const host::FuncGraphPtr& graph) {
  std::map<std::string, size_t> place_of;
  for (size_t i = 0; i < step_.parameters.size(); ++i) place_of.emplace(step_.parameters[i], i);
  int ranks = 0;
  Check(pipeloom_program_ranks(program_.get(), &ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<int>& local_ranks = world_->local_ranks();
    const bool local = std::find(local_ranks.begin(), local_ranks.end(), rank) != local_ranks.end();
    const pipeloom_parameter* parameters = nullptr;
    size_t count = 0;
    Check(pipeloom_program_parameters(program_.get(), rank, &parameters, &count));
    for (size_t i = 0; i < count; ++i) {
      const size_t place = place_of.at(parameters[i].name);
      const host::ValuePtr value = graph->parameters()[place]->cast<host::ParameterPtr>()->default_param();
      world_->NoteParameter(parameters[i].name, step_.parameter_types[place],
                            local ? value->cast<host::tensor::TensorPtr>() : nullptr);
      if (local) bindings_.push_back({place, rank, nullptr, {}});
    }
  }
}

void StepProgram::Bind(const host::VectorRef& inputs) {
  std::map<size_t, const Binding*> first_of;
  for (Binding& binding : bindings_) {
    void* memory = TensorOf(inputs[binding.place])->data_c();
    const Type& type = step_.parameter_types[binding.place];
    const bool is_first = first_of.emplace(binding.place, &binding).second;
    if (binding.bound == memory) continue;
    binding.bound = memory;
    if (!is_first) {
      binding.memory.resize(static_cast<size_t>(type.bytes()));
      std::memcpy(binding.memory.data(), memory, binding.memory.size());
      memory = binding.memory.data();
    }
    const pipeloom_tensor value = {type.View(), memory};
    Check(pipeloom_session_bind_parameter(world_->session(), binding.rank, step_.parameters[binding.place].c_str(),
                                          &value));
  }
}

host::BaseRef StepProgram::Run(const host::VectorRef& inputs) {
  if (inputs.size() != step_.parameters.size()) {
    throw Refused("the step has " + std::to_string(step_.parameters.size()) + " arguments and parameters, not " +
                  std::to_string(inputs.size()));
  }
  Bind(inputs);
  std::vector<Type> types;
  std::vector<pipeloom_tensor> given;
  for (const size_t place : step_.inputs) types.push_back(TypeOf(TensorOf(inputs[place])));
  for (size_t i = 0; i < types.size(); ++i) {
    given.push_back({types[i].View(), TensorOf(inputs[step_.inputs[i]])->data_c()});
  }
  const pipeloom_type* output_types = nullptr;
  size_t count = 0;
  Check(pipeloom_session_outputs(world_->session(), loaded_, &output_types, &count));
  std::vector<host::tensor::TensorPtr> outputs;
  std::vector<pipeloom_tensor> written;
  for (size_t i = 0; i < count; ++i) {
    const host::ShapeVector shape(output_types[i].extents, output_types[i].extents + output_types[i].rank);
    outputs.push_back(std::make_shared<host::tensor::Tensor>(TypeIdOf(output_types[i].dtype), shape));
    written.push_back({output_types[i], outputs.back()->data_c()});
  }
  {
    const ::pybind11::gil_scoped_release release;
    Check(pipeloom_session_run(world_->session(), loaded_, given.data(), given.size(), written.data(), written.size()));
  }
  return Returned(step_.result, outputs, inputs);
}

host::BaseRef StepProgram::Returned(const Result& result, const std::vector<host::tensor::TensorPtr>& outputs,
                                    const host::VectorRef& inputs) const {
  if (result.is_tuple) {
    host::VectorRef tuple;
    for (const Result& element : result.elements) tuple.push_back(Returned(element, outputs, inputs));
    return tuple;
  }
  if (result.output >= 0) return outputs[static_cast<size_t>(result.output)];
  if (result.parameter.empty()) return result.constant;
  for (size_t i = 0; i < step_.parameters.size(); ++i) {
    if (step_.parameters[i] == result.parameter) return inputs[i];
  }
  throw Refused("the step returns parameter " + result.parameter + ", which it does not have");
}

}  // namespace pipeloom::ms
