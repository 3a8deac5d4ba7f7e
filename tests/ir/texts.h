#ifndef TESTS_IR_TEXTS_H_
#define TESTS_IR_TEXTS_H_

namespace pipeloom {

// Texts in printed form that together use every part of it.

inline constexpr char kStepText[] = R"(pipeline {micro_batches=4, schedule="1f1b", stages=2, threads=1}
stage "layer1" = 0
stage "layer2" = 1

graph @step(%image: f32[8,784] {batch_axis=0}, %label: i32[8] {batch_axis=0}) -> (%loss {reduce="sum"}, %h {index=1, reduce="concat"}) {
  %w1 = param "layer1.weight" : f32[784,512]
  %w2 = param "layer2.weight" {trainable=false} : f32[512,10]
  %h = matmul(%image, %w1) {group=4, kernel="brg"} : f32[8,512]  // layer1, stage 0, forward
  %y = matmul(%h, %w2) : f32[8,10]  // layer2, stage 1, forward
  %loss = softmax_cross_entropy(%y, %label) : f32[]  // loss, forward
} update sgd {lr=0.01}
)";

inline constexpr char kBlockText[] = R"(pipeline {micro_batches=4, schedule="1f1b", stages=1, threads=1}

block @net.0(%x: f32[8,4]) -> (%h, %a) {
  %w = param "0.weight" : f32[4,4]
  %c = constant 0.5 : f32[]
  %a = matmul(%x, %w) : f32[8,4]  // 0, forward
  %h = mul(%a, %c) : f32[8,4]  // 1, forward
}

block @"net 0.W" part W(%x: f32[8,4], %d: f32[8,4]) -> (%d.w) {
  %d.w = matmul(%x, %d) {transpose_a} : f32[4,4]  // 0, backward
}

graph @step(%x: f32[8,4] {batch_axis=0}) -> () {
  %w = param "net.0.weight" : f32[4,4]
  %h, %a = call(%x, %w) {block="net.0", cells="net.0,net.1"} : f32[8,4], f32[8,4]  // net.0, forward
  %d.w = call(%x, %h) {block="net 0.W", cells="net.0,net.1"} : f32[4,4]  // net.0, backward
}
)";

inline constexpr char kSplitText[] = R"(pipeline {micro_batches=2, schedule="gpipe", stages=2, threads=3}

graph @step chunk 0 F(%x: f32[4,8] {batch_axis=0} buffer 4 x 1) -> (%x.micro, %h) {
  %x.micro = micro_batch_slice(%x) {axis=0, count=2} : f32[2,8]  // stage 0, forward, buffer 4 x 2
  %h = relu(%x.micro) : f32[2,8]  // net.relu, stage 0, forward, buffer 1 x 2
  send(%h) {channel=0, to=1}  // net.relu, stage 0, forward
}

graph @step chunk 0 W(%x.micro: f32[2,8] saved, %d: f32[2,8] boundary channel 1 x 2) -> (%d.w) {
  %c = constant 0.5 : f32[]  // buffer 3 x 1
  %d.c = mul(%d, %c) : f32[2,8]  // stage 0, backward
  %d.w = matmul(%x.micro, %d.c) {transpose_a} : f32[8,8]  // net, stage 0, backward, buffer 2 x 2 first_apart
}

graph @step chunk 1 F() -> (%d, %p, %q) {
  %h = receive() {channel=0, from=0} : f32[2,8]  // stage 1, forward, channel 0 x 2
  %d = relu(%h) : f32[2,8]  // net, stage 1, forward
  %p, %q = host_pair(%d) {deep=false, wide} : f32[2,4], i32[2]  // net, stage 1, forward, buffer 0 x 1, none
}

graph @step chunk 0 U(%d.w: f32[8,8] saved) -> () {
  %w = param "net.weight" : f32[8,8]
  sgd(%w, %d.w) {lr=0.1}  // net, stage 0, update
}
)";

inline constexpr char kOddText[] = R"(pipeline {micro_batches=1, schedule="a \"quoted\" one", stages=1, threads=1}
stage "" = 0
stage "tab\there" = -1

graph @"no graph"(%"the input": f32[0,3], %empty.1: i32[], %a.2: f32[2], %9: f32[2]) -> (%a, %a) {
  %a = param "\303\251" : f32[2]
  %i = constant [1, -2147483648, 0] : i32[3]
  %i.one = constant 7 : i32[100]
  %f = constant [1e-45, 3.4028234663852886e+38, -0.0] : f32[3]
  %special = constant [inf, -inf] : f32[2]
  %none = constant [] : f32[0]
  %a.1, %a.1.1, %"%" = "host op"(%a) {axis=-1, empty=[], list=[1,-2,9223372036854775807], text="\"\\\n"} : f32[2], f32[2], f32[]  // "stage", backward, step
  show(%a, %a.1) : ()  // "a cell", update, micro
  barrier() : ()  // forward
  %b = add(%a, %a.1) : f32[2]  // 0.layer, update
}

graph @other() -> () {
}
)";

}  // namespace pipeloom

#endif  // TESTS_IR_TEXTS_H_
