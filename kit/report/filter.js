// Shows the evictions that hold the text and are of the chosen kind; table and timeline share the indices.
const wanted = text.value_input.toLowerCase();
const kinds = [outcome, namespace, zone, node].filter((each) => each.value !== "all");
const data = source.data;
const columns = [data.namespace, data.pod, data.node, data.taint];
const found = [];
for (let i = 0; i < data.pod.length; i++) {
  if (!kinds.every((each) => data[each.name][i] === each.value)) continue;
  if (wanted && !`${data.namespace[i]}/${data.pod[i]}\n${data.node[i]}\n${data.taint[i]}`.toLowerCase().includes(wanted)) continue;
  found.push(i);
}
chosen.indices = found;
source.change.emit();
