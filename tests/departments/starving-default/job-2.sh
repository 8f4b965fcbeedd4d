# jobgen slurm --site ./site.toml --nodes 1 --gpus-per-node 2 --queue all -- train.py
#SBATCH --job-name=jobgen
#SBATCH --nodes=1
#SBATCH --ntasks-per-node=2
#SBATCH --cpus-per-task=16
#SBATCH --gpus-per-node=2
#SBATCH --time=01:00:00
#SBATCH --output=jobgen-%j.log
#SBATCH --open-mode=append
#SBATCH --partition=all
# jobgen: note: the launcher is srun, that of site site
